"""Salts of approved drugs and pesticides: which counter-ions they are sold with, and their drawings."""

import csv
from pathlib import Path

from rdkit import Chem

DRUGS = Path(__file__).parents[1] / "data" / "drugs.csv"
# Neutral, and as an ion if there is another drawing.
COUNTER_IONS = r"""
hydrochloride Cl [Cl-] | hydrobromide Br [Br-] | sulfate OS(=O)(=O)O OS(=O)(=O)[O-]
phosphate OP(=O)(O)O OP(=O)(O)[O-] | nitrate O[N+](=O)[O-] [O-][N+](=O)[O-] | mesylate CS(=O)(=O)O CS(=O)(=O)[O-]
esylate CCS(=O)(=O)O CCS(=O)(=O)[O-] | edisylate OS(=O)(=O)CCS(=O)(=O)O [O-]S(=O)(=O)CCS(=O)(=O)O
isethionate OCCS(=O)(=O)O OCCS(=O)(=O)[O-] | methylsulfate COS(=O)(=O)O COS(=O)(=O)[O-]
besylate OS(=O)(=O)c1ccccc1 [O-]S(=O)(=O)c1ccccc1 | tosylate Cc1ccc(cc1)S(=O)(=O)O Cc1ccc(cc1)S(=O)(=O)[O-]
napsylate OS(=O)(=O)c1ccc2ccccc2c1 [O-]S(=O)(=O)c1ccc2ccccc2c1
camsylate CC1(C)[C@@H]2CC[C@@]1(CS(=O)(=O)O)C(=O)C2 CC1(C)C2CCC1(CS(=O)(=O)[O-])C(=O)C2 | acetate CC(=O)O CC(=O)[O-]
lactate C[C@H](O)C(=O)O CC(O)C(=O)[O-] | malate OC(=O)C[C@H](O)C(=O)O [O-]C(=O)CC(O)C(=O)O
succinate OC(=O)CCC(=O)O [O-]C(=O)CCC(=O)O | maleate OC(=O)/C=C\C(=O)O [O-]C(=O)/C=C\C(=O)O
fumarate OC(=O)/C=C/C(=O)O [O-]C(=O)/C=C/C(=O)O
tartrate OC(=O)[C@H](O)[C@@H](O)C(=O)O OC(=O)[C@H](O)[C@@H](O)C(=O)[O-]
citrate OC(=O)CC(O)(CC(=O)O)C(=O)O OC(=O)CC(O)(CC(=O)[O-])C(=O)O | adipate OC(=O)CCCCC(=O)O OC(=O)CCCCC(=O)[O-]
stearate CCCCCCCCCCCCCCCCCC(=O)O CCCCCCCCCCCCCCCCCC(=O)[O-]
saccharate OC(=O)C(O)C(O)C(O)C(O)C(=O)O OC(=O)C(O)C(O)C(O)C(O)C(=O)[O-]
gluconate OCC(O)C(O)C(O)C(O)C(=O)O OC[C@@H](O)[C@@H](O)[C@H](O)[C@@H](O)C(=O)[O-]
gluceptate OCC(O)C(O)C(O)C(O)C(O)C(=O)O OCC(O)C(O)C(O)C(O)C(O)C(=O)[O-]
lactobionate OCC(O)C(OC1OC(CO)C(O)C(O)C1O)C(O)C(O)C(=O)O OCC(O)C(OC1OC(CO)C(O)C(O)C1O)C(O)C(O)C(=O)[O-]
benzoate OC(=O)c1ccccc1 [O-]C(=O)c1ccccc1 | salicylate OC(=O)c1ccccc1O [O-]C(=O)c1ccccc1O
mandelate O[C@H](C(=O)O)c1ccccc1 OC(C(=O)[O-])c1ccccc1 | orotate OC(=O)c1cc(=O)[nH]c(=O)[nH]1
hippurate OC(=O)CNC(=O)c1ccccc1 [O-]C(=O)CNC(=O)c1ccccc1 | nicotinate OC(=O)c1cccnc1
xinafoate OC(=O)c1ccc2ccccc2c1O [O-]C(=O)c1ccc2ccccc2c1O
pamoate OC(=O)c1cc2ccccc2c(Cc2c(O)c(cc3ccccc23)C(=O)O)c1O [O-]C(=O)c1cc2ccccc2c(Cc2c(O)c(cc3ccccc23)C(=O)O)c1O
theoclate Cn1c(=O)c2[nH]c(Cl)nc2n(C)c1=O Cn1c(=O)c2[n-]c(Cl)nc2n(C)c1=O | glycinate NCC(=O)O
trifenatate OC(=O)C(c1ccccc1)(c1ccccc1)c1ccccc1 [O-]C(=O)C(c1ccccc1)(c1ccccc1)c1ccccc1
aspartate N[C@@H](CC(=O)O)C(=O)O [NH3+]C(CC(=O)[O-])C(=O)[O-] | hydrate O | bromide Br [Br-] | chloride Cl [Cl-]
sodium [Na] [Na+] | potassium [K] [K+] | calcium [Ca] [Ca+2] | magnesium [Mg] [Mg+2] | zinc [Zn] [Zn+2]
meglumine CNC[C@H](O)[C@@H](O)[C@H](O)[C@H](O)CO C[NH2+]CC(O)C(O)C(O)C(O)CO
lysine NCCCC[C@H](N)C(=O)O [NH3+]CCCCC(N)C(=O)O | arginine NC(=N)NCCC[C@H](N)C(=O)O NC(=[NH2+])NCCCC([NH3+])C(=O)[O-]
trometamol NC(CO)(CO)CO [NH3+]C(CO)(CO)CO | olamine NCCO [NH3+]CCO | diolamine OCCNCCO OCC[NH2+]CCO
erbumine CC(C)(C)N CC(C)(C)[NH3+] | epolamine OCCN1CCCC1 OCC[NH+]1CCCC1 | deanol CN(C)CCO C[NH+](C)CCO
diethylamine CCNCC CC[NH2+]CC | triethylamine CCN(CC)CC CC[NH+](CC)CC | dimethylamine CNC C[NH2+]C
isopropylamine CC(C)N CC(C)[NH3+] | diglycolamine NCCOCCO [NH3+]CCOCCO
triisopropanolamine CC(O)CN(CC(C)O)CC(C)O CC(O)C[NH+](CC(C)O)CC(C)O | piperazine C1CNCCN1 C1C[NH2+]CCN1
ethylenediamine NCCN [NH3+]CC[NH3+] | choline C[N+](C)(C)CCO.[OH-] C[N+](C)(C)CCO
dicyclohexylamine C1CCC(CC1)NC1CCCCC1 C1CCC(CC1)[NH2+]C1CCCCC1
benzathine c1ccc(cc1)CNCCNCc1ccccc1 c1ccc(cc1)C[NH2+]CC[NH2+]Cc1ccccc1 | benethamine c1ccc(cc1)CCNCc1ccccc1
"""
# Drugs of data/drugs.csv, and others by the SMILES of their parents, each with its counter-ions.
SOLD = """
abacavir sulfate | acetazolamide sodium | aciclovir sodium | allopurinol sodium | amantadine hydrochloride sulfate
amitriptyline hydrochloride pamoate | amlodipine besylate maleate camsylate adipate orotate nicotinate
amoxicillin hydrate sodium | amphetamine sulfate aspartate saccharate phosphate | ampicillin sodium hydrate
aspirin lysine | atorvastatin calcium | atropine sulfate | azathioprine sodium | bosutinib hydrate
bupropion hydrochloride hydrobromide | buspirone hydrochloride | caffeine citrate | chloroquine phosphate sulfate
chlorpromazine hydrochloride pamoate | cimetidine hydrochloride | ciprofloxacin hydrochloride lactate
citalopram hydrobromide | clonidine hydrochloride | clopidogrel sulfate besylate | cocaine hydrochloride
codeine phosphate sulfate | cyclophosphamide hydrate | cytarabine hydrochloride | dasatinib hydrate
diltiazem hydrochloride malate | diclofenac sodium potassium epolamine diethylamine deanol
diphenhydramine hydrochloride citrate theoclate | donepezil hydrochloride | dopamine hydrochloride
doxycycline hydrochloride hydrate | enalapril maleate | ephedrine sulfate hydrochloride | epinephrine tartrate
erlotinib hydrochloride | erythromycin lactobionate stearate gluceptate | ethambutol hydrochloride | fentanyl citrate
fluorouracil sodium | fluoxetine hydrochloride | furosemide sodium | gemcitabine hydrochloride | haloperidol lactate
hydroxychloroquine sulfate | ibuprofen lysine arginine sodium | imatinib mesylate | imipramine hydrochloride pamoate
indomethacin sodium meglumine | ketamine hydrochloride | ketoprofen lysine sodium | levothyroxine sodium
lidocaine hydrochloride | lisinopril hydrate | loperamide hydrochloride | losartan potassium | memantine hydrochloride
metformin hydrochloride pamoate glycinate | methadone hydrochloride | methotrexate sodium
methylphenidate hydrochloride | metoprolol tartrate succinate fumarate | midazolam hydrochloride maleate
montelukast sodium | morphine sulfate hydrochloride tartrate | naloxone hydrochloride | naproxen sodium piperazine
neostigmine bromide methylsulfate | nicotine tartrate salicylate | olanzapine pamoate | omeprazole magnesium sodium
ondansetron hydrochloride | oseltamivir phosphate | oxycodone hydrochloride | pantoprazole sodium magnesium
paroxetine hydrochloride mesylate | penicillin_g sodium potassium benzathine benethamine | phenobarbital sodium
phenytoin sodium | pioglitazone hydrochloride | piroxicam olamine | prazosin hydrochloride | procaine hydrochloride
promethazine hydrochloride theoclate | propranolol hydrochloride | quetiapine fumarate | quinine sulfate hydrochloride
raloxifene hydrochloride | ranitidine hydrochloride | rosiglitazone maleate | rosuvastatin calcium zinc
salbutamol sulfate | sertraline hydrochloride | sildenafil citrate | sitagliptin phosphate malate | sorafenib tosylate
sumatriptan succinate | sunitinib malate | tamoxifen citrate | tetracycline hydrochloride
theophylline ethylenediamine choline olamine | tolbutamide sodium | tramadol hydrochloride | trazodone hydrochloride
trimethoprim sulfate | valproic_acid sodium magnesium calcium | vardenafil hydrochloride
venlafaxine hydrochloride besylate | verapamil hydrochloride | warfarin sodium potassium | zolpidem tartrate
OC(=O)c1ccc2nc(oc2c1)-c1cc(Cl)cc(Cl)c1 meglumine | CC(=O)Nc1c(I)c(NC(C)=O)c(I)c(C(=O)O)c1I meglumine sodium
CNC(=O)c1c(I)c(NC(C)=O)c(I)c(C(=O)O)c1I meglumine | Cc1c(Nc2ncccc2C(=O)O)cccc1C(F)(F)F meglumine
OC(=O)C1CCn2c1ccc2C(=O)c1ccccc1 trometamol | C[C@@H]1O[C@@H]1P(=O)(O)O trometamol sodium calcium
CCCC(NC(C)C(=O)N1C2CCCCC2CC1C(=O)O)C(=O)OCC erbumine arginine | Cc1cc(C2CCCCC2)n(O)c(=O)c1 olamine
OC(=O)COc1nc(Cl)c(Cl)cc1Cl triethylamine | OC(=O)COc1ccc(Cl)cc1Cl triisopropanolamine dimethylamine diolamine choline
COc1c(Cl)ccc(Cl)c1C(=O)O diglycolamine dimethylamine | OC(=O)CNCP(=O)(O)O isopropylamine potassium
C[C@H](NC(=O)OC(C)(C)C)C(=O)O dicyclohexylamine | CC(C)(Oc1ccc(cc1)C(=O)c1ccc(Cl)cc1)C(=O)O choline
CN1CCCN=C1C=Cc1cccs1 pamoate tartrate | OCCOCCN1CCN(CC1)C(c1ccccc1)c1ccc(Cl)cc1 hydrochloride pamoate
OCc1cc(ccc1O)C(O)CNCCCCCCOCCCCc1ccccc1 xinafoate | OCc1cc(ccc1O)C(O)CNCCCCCCOCCOCc1c(Cl)cccc1Cl trifenatate
C1N2CN3CN1CN(C2)C3 hippurate mandelate | CCC(=O)OC(Cc1ccccc1)(c1ccccc1)C(C)CN(C)C napsylate hydrochloride
CN(C)CCOC(C)(c1ccccc1)c1ccccn1 succinate | CN(C)CCC(c1ccc(Cl)cc1)c1ccccn1 maleate
CNCC(O)c1cccc(O)c1 hydrochloride tartrate | CCN(C)C(=O)Oc1cccc(c1)C(C)N(C)C tartrate
Cn1c(=O)cc(n(Cc2ccccc2C#N)c1=O)N1CCCC(N)C1 benzoate | CN(C)CCc1c[nH]c2ccc(Cn3cncn3)cc12 benzoate
COC(=O)c1ccc2C(=C(Nc3ccc(cc3)N(C)C(=O)CN3CCN(C)CC3)c3ccccc3)C(=O)Nc2c1 esylate
CN1CCN(CCCN2c3ccccc3Sc3ccc(Cl)cc23)CC1 edisylate maleate mesylate | Cc1ncsc1CCCl edisylate
N=C(N)c1ccc(OCCCCCOc2ccc(cc2)C(=N)N)cc1 isethionate
N=C(NCCCCCCNC(=N)NC(=N)Nc1ccc(Cl)cc1)NC(=N)Nc1ccc(Cl)cc1 gluconate acetate
COc1ccc2nccc(C(O)C3CC4CCN3CC4C=C)c2c1 gluconate | CNCCc1ccccn1 mesylate hydrochloride | NCCS tartrate
C[N+]1(C)CCC(C1)OC(=O)C(O)(C1CCCC1)c1ccccc1 bromide tosylate | C[N+](C)(C)CCOC(=O)CCC(=O)OCC[N+](C)(C)C chloride
CC(C[N+](C)(C)C)OC(N)=O chloride | Cc1ncc(C[n+]2csc(CCO)c2C)c(N)n1 nitrate
CC1(C)SC2C(NC(=O)COc3ccccc3)C(=O)N2C1C(=O)O potassium benzathine calcium | NCCCC(O)(P(=O)(O)O)P(=O)(O)O sodium
OCC=C1OC2CC(=O)N2C1C(=O)O potassium | CC(=O)NCCCS(=O)(=O)O calcium | CC(C)(C)NCC(O)COc1nsnc1N1CCOCC1 maleate
CC(C)NCC(O)COc1ccc(COCCOC(C)C)cc1 fumarate | CN1CCCC1CCOC(C)(c1ccccc1)c1ccc(Cl)cc1 fumarate
CCN(CC)C(=O)N1CCN(C)CC1 citrate
"""
ACIDS = (
    "[OX2H][C,S,P]=O", "[nH]1nnnc1", "[nH]1cnnn1", "[OX2H][#6;a,$([#6]=[#6])]", "[NX3;H1,H2]S(=O)=O", "[NX3H]C=O", "[nH]",
    "[OX2H]",
)  # fmt: skip
BASES = ("[NX3;H2,H1,H0;!$(N-[C,S]=[O,S]);!$(N-a);!$(NC=N)]", "[NX2]=C", "[nX2]", "[NX3]")


def sold_salts() -> list[tuple[str, str, str, bool]]:
    """The parent of each salt, its counter-ion, neutral and as an ion, and whether the parent is the acid."""
    with open(DRUGS, encoding="utf-8") as file:
        drugs = {row["name"].replace(" ", "_"): row["smiles"] for row in csv.DictReader(file)}
    ions = {name: (neutral, *ion, neutral)[:2] for name, neutral, *ion in facts(COUNTER_IONS)}
    return [
        (drugs.get(drug, drug), *ions[name], "+" in ions[name][1].replace("[N+](=O)", ""))
        for drug, *names in facts(SOLD)
        for name in names
    ]


def facts(text: str) -> list[list[str]]:
    return [part.split() for part in text.replace("\n", "|").split("|") if part.strip()]


def ionized(parent: str, is_acid: bool) -> str:
    """The ion of a parent: without the proton of an acid, or with one at a base; itself if it has neither."""
    mol = Chem.MolFromSmiles(parent)
    for pattern in ACIDS if is_acid else BASES:
        if found := mol.GetSubstructMatch(Chem.MolFromSmarts(pattern)):
            atom = mol.GetAtomWithIdx(found[0])
            atom.SetFormalCharge(atom.GetFormalCharge() + (-1 if is_acid else 1))
            atom.SetNumExplicitHs(max(atom.GetNumExplicitHs() + (-1 if is_acid else 1), 0))
            atom.SetNoImplicit(atom.GetIsAromatic())
            mol.UpdatePropertyCache()
            return Chem.MolToSmiles(mol)
    return parent

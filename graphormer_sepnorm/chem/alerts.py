"""Structural alerts: substructures that often interfere with assays, are reactive or toxic."""

from functools import cache

from rdkit import Chem
from rdkit.Chem.FilterCatalog import FilterCatalog, FilterCatalogParams

from graphormer_sepnorm.chem.smiles import one_molecule

CATALOGS = ("PAINS", "BRENK")


@cache
def alert_catalog() -> FilterCatalog:
    """Sources: PAINS by Baell and Holloway, J. Med. Chem. 2010; BRENK by Brenk et al., ChemMedChem 2008."""
    chosen = FilterCatalogParams()
    for name in CATALOGS:
        chosen.AddCatalog(getattr(FilterCatalogParams.FilterCatalogs, name))
    return FilterCatalog(chosen)


def find_alerts(mol: Chem.Mol) -> list[str]:
    """The alerts of a molecule, each as catalog and name, for example "PAINS_A: quinone_A(370)"."""
    with one_molecule():
        found = alert_catalog().GetMatches(mol)
        return sorted({f"{entry.GetProp('FilterSet')}: {entry.GetDescription()}" for entry in found})

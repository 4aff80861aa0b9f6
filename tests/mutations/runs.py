"""Mutations of run folders and of their lock."""

from tests.mutations.mutation import mutations

MUTATIONS = (
    *mutations(
        "runs/folder.py",
        "unit/runs/test_folder.py",
        ('["epoch"] < lines[0]["epoch"]]', '["epoch"] <= lines[0]["epoch"]]'),
        ("key=lambda member: (len(member.name), member.name)", "key=lambda member: member.name"),
        ("        if not resume:\n            self.check_new()", "        if resume:\n            self.check_new()"),
        ("if config.dataset == TABLE else config.dataset", "if config.dataset != TABLE else config.dataset"),
        ("elif self.holds_run and not self.state.exists():", "elif False:"),
        ("return cls(path if path.is_dir() else path.parent)", "return cls(path)"),
        ("for member in run.members()[:1])", "for member in run.members()[1:])"),
    ),
    *mutations("system/files.py", "unit/system/test_files.py", ("blocking=False", "blocking=True")),
)

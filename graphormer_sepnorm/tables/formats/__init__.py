"""Tables of molecules, streamed row by row: each record becomes a ``Row``, in order, readable or not.

Fields stay the text that they were; bytes that are not UTF-8 pass through as they came.
"""

from graphormer_sepnorm.tables.formats.csv_text import DELIMITERS
from graphormer_sepnorm.tables.formats.opening import (
    PARQUET,
    TABLE_KINDS,
    is_library,
    is_table_name,
    kind_of,
    named_column,
    open_table,
    rows_of,
)
from graphormer_sepnorm.tables.formats.table import (
    Row,
    Table,
    WholeTable,
    find_column,
    free_name,
    not_one_column,
    smiles_of_rows,
    table_of_smiles,
    with_free_names,
)
from graphormer_sepnorm.tables.formats.text import STANDARD_INPUT, is_file, refuse_missing

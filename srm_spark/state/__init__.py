"""Everything that knows Delta: tables for SQL and notebooks, made from what Kafka holds. Losing one costs nothing."""

from srm_spark.state.loss_table import LossTable
from srm_spark.state.map_table import SETTINGS, OffsetMapTable, TableRow, first_line, own_folder
from srm_spark.state.reading import read_losses, read_offset_map

__all__ = [
    "SETTINGS",
    "LossTable",
    "OffsetMapTable",
    "TableRow",
    "first_line",
    "own_folder",
    "read_losses",
    "read_offset_map",
]

"""Everything that knows Delta: tables for SQL and notebooks, made from what Kafka holds. Losing one costs nothing."""

from srm_spark.state.map_table import SETTINGS, OffsetMapTable, TableRow, first_line, own_folder, read_offset_map

__all__ = ["SETTINGS", "OffsetMapTable", "TableRow", "first_line", "own_folder", "read_offset_map"]

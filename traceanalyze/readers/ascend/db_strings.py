"""STRING_IDS: the texts of a database as a dictionary of the model, and its ids as codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.frozen import frozen
from traceanalyze.model.columns import Strings
from traceanalyze.readers.ascend import db_file
from traceanalyze.readers.ascend.shared import NO_TEXT, Texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from traceanalyze.readers.ascend.db_file import Database

_GROUPS = ("COMMUNICATION_OP", "COMMUNICATION_TASK_INFO")


@frozen
class StringIds:
    """The texts of a database by id."""

    table: Strings
    """The texts themselves."""
    texts: Texts
    """The dictionary of the trace, which begins with `table`."""
    ids: NDArray[np.int64]
    """Ascending."""
    codes: NDArray[np.int32]
    """Code of each id."""
    known: Mapping[bytes, int]
    """Text → code, of the texts read."""
    private: Mapping[int, str]
    """Texts that are not for the dictionary, because they hold addresses: the names of groups."""

    def of(self, ids: NDArray[np.int64]) -> NDArray[np.int32]:
        """Codes of ids; `NO_TEXT` for those that are not there."""
        if len(self.ids) == 0:
            return np.full(len(ids), NO_TEXT, np.int32)
        at = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[at] == ids, self.codes[at], NO_TEXT).astype(np.int32)

    def names(self, ids: NDArray[np.int64]) -> NDArray[np.int32]:
        """Codes of ids; that of the empty text for those that are not there."""
        return np.maximum(self.of(ids), 0)

    def ids_of(self, *wanted: str) -> list[int]:
        """Ids of texts, of those that are there."""
        codes = [self.known[text.encode()] for text in wanted if text.encode() in self.known]
        return [int(one) for one in self.ids[np.isin(self.codes, codes)]]


def read_strings(database: Database) -> StringIds:
    """All texts of a database. Equal texts get one code; ids without a text are unknown ids."""
    groups = [db_file.integers(database, table, ["groupName"])["groupName"] for table in _GROUPS]
    hidden = set(np.unique(np.concatenate(groups)).tolist())
    rows = db_file.texts(database, "STRING_IDS", "id", "value")
    known: dict[bytes, int] = {b"": 0}
    codes = [0 if key in hidden else known.setdefault(value, len(known)) for key, value in rows]
    ids = np.array([key for key, _ in rows], np.int64)
    order = np.argsort(ids, kind="stable")
    offsets = np.zeros(len(known) + 1, np.int64)
    np.cumsum([len(text) for text in known], out=offsets[1:])
    table = Strings(np.frombuffer(b"".join(known), np.uint8), offsets)
    return StringIds(
        table=table,
        texts=Texts(table),
        ids=ids[order],
        codes=np.array(codes, np.int32)[order],
        known=known,
        private={key: value.decode("utf-8", "replace") for key, value in rows if key in hidden},
    )

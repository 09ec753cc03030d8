"""Rules that deal the rows of a source to clients, one per file."""

from fedhedge.data.partitioners.base import Partitioner
from fedhedge.data.partitioners.by_label import ByLabel
from fedhedge.data.partitioners.dirichlet import Dirichlet
from fedhedge.data.partitioners.dominant import Dominant
from fedhedge.data.partitioners.iid import Iid
from fedhedge.data.partitioners.imbalanced import Imbalanced

__all__ = ["ByLabel", "Dirichlet", "Dominant", "Iid", "Imbalanced", "Partitioner"]

"""How often each kind of statement is drawn."""

from __future__ import annotations

from program_more import MORE
from program_statements import (
    Statement,
    arithmetic,
    arithmetic_by_name,
    assigned,
    by_place,
    cast,
    chosen,
    expanded,
    gathered,
    indexed,
    joined,
    layer,
    new,
    number_of_sizes,
    numel_of,
    permuted,
    places,
    product,
    reduced,
    reduced_with_place,
    reshaped,
    scaled_by_size,
    scattered,
    size_of,
    sliced,
    unary,
    view,
    written,
)  # fmt: skip

STATEMENTS: dict[Statement, float] = {
    size_of: 4, number_of_sizes: 3, scaled_by_size: 2, numel_of: 1, view: 8, permuted: 2, reshaped: 4, expanded: 3, sliced: 6,
    written: 8, assigned: 6, scattered: 3, indexed: 4, gathered: 2, places: 3, chosen: 3, arithmetic: 10, arithmetic_by_name: 5,
    cast: 4, unary: 5, reduced: 4, reduced_with_place: 4, new: 4, joined: 5, product: 3, layer: 4, by_place: 1, **MORE,
}  # fmt: skip

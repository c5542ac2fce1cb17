# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""How a result came about: decisions, files, settings."""

from collections.abc import Iterator, Mapping
from typing import Any

from robotid_ros.identification.result import IdentificationResult
from robotid_ros.report.content import Column, Item, Table

__all__ = ['provenance_items']

_MOST = 24  # entries of a list


def provenance_items(result: IdentificationResult) -> Iterator[Item]:
    """Yield tables of decisions and provenance."""
    if result.decisions:
        yield Table(
            caption='What was tried and chosen',
            columns=(Column(name='Step', numeric=False), Column(name='Decision', numeric=False)),
            rows=tuple((str(k + 1), str(each)) for k, each in enumerate(result.decisions)),
        )
    rows = tuple(_flat(result.provenance))
    if rows:
        yield Table(
            caption='Where it came from',
            columns=(Column(name='Entry', numeric=False), Column(name='Value', numeric=False)),
            rows=rows,
        )


def _flat(content: Mapping[str, Any], name: str = '') -> Iterator[tuple[str, str]]:
    """Yield one row for the plain entries of each mapping; what is empty is left out."""
    plain = {key: value for key, value in content.items() if not _nested(value) and value not in (None, '', [], ())}
    if plain:
        yield name or 'run', '; '.join(f'{key.replace("_", " ")}: {_brief(value)}' for key, value in plain.items())
    for key, value in content.items():
        below = f'{name} · {key}' if name else key
        if isinstance(value, Mapping):
            yield from _flat(value, below)
        elif _nested(value):
            for k, item in enumerate(value):
                yield from _flat(item, f'{below} {k + 1}') if isinstance(item, Mapping) else [(below, _brief(item))]


def _nested(value: Any) -> bool:
    several = isinstance(value, list | tuple)
    return isinstance(value, Mapping) or (several and any(isinstance(item, Mapping) for item in value))


def _brief(value: Any) -> str:
    if isinstance(value, list | tuple):
        shown = ', '.join(_brief(item) for item in value[:_MOST])
        return shown + (' …' if len(value) > _MOST else '')
    return f'{value:.6g}' if isinstance(value, float) else str(value)

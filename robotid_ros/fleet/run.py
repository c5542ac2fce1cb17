# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Recordings identified side by side, each kept as soon as it is finished."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import joblib
import numpy as np
import yaml

import robotid_ros
from robotid_ros.errors import MissingDependencyError, RobotIdError
from robotid_ros.files import file_hash, write_text
from robotid_ros.fleet.outcome import Entry, Finding, Outcome, judge, keep, kept, own_error
from robotid_ros.identification import IdentificationConfig, IdentificationResult, calibrated_urdf
from robotid_ros.jobs import LOST, each
from robotid_ros.model import RobotModel
from robotid_ros.progress import Progress, silent
from robotid_ros.reading import read_yaml
from robotid_ros.workflow import Files, identify_files, load_datasets

_FINDINGS = 'findings.yaml'


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One identification, with everything it takes but the recordings, which are read where it runs.

    The ``command`` by which it was asked for goes into the provenance.
    """

    entry: Entry
    files: Files
    model: RobotModel
    config: IdentificationConfig
    command: str = ''

    @property
    def key(self) -> str:
        """A digest of everything the result depends on: files, arm, settings, version."""
        files = self.files
        content = [
            robotid_ros.__version__,
            joblib.hash((self.model, files.settings, self.config, files.train_fraction, files.topic)),
        ]
        for kind, paths in (('', files.training), ('validate', files.validation), ('friction', files.friction)):
            content.append(kind)
            for path in map(Path, paths):
                try:
                    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
                        if file.is_file():
                            content.append(file_hash(file))
                except OSError:  # the identification says what is wrong with it
                    content.append('unreadable')
        return hashlib.sha256('\n'.join(content).encode()).hexdigest()


def identify_fleet(
    tasks: Sequence[Task | Outcome], folder: Path, *, jobs: int = -1, progress: Progress | None = None
) -> list[Outcome]:
    """Identify every recording that an earlier run has not finished, and keep each as soon as it is.

    Runs on ``jobs`` processes of this machine (-1: one per core), or within :func:`robotid_ros.jobs.engine` on a
    cluster, whose workers must find the recordings under the same paths. Only this process writes. An outcome among the
    tasks stands for a recording that failed before it became a task.

    Returns
    -------
    list of Outcome
        One for each task, in order. One that failed says why; it does not end the others.

    Raises
    ------
    DataError
        If the folder cannot be written.
    MissingDependencyError
        If a recording needs a library that is not installed: the next one would need it too.
    """
    keys = ['' if isinstance(task, Outcome) else task.key for task in tasks]
    found: dict[int, Outcome] = {}
    waiting: list[tuple[int, Task]] = []
    for k, (task, key) in enumerate(zip(tasks, keys, strict=True)):
        if isinstance(task, Outcome):
            found[k] = task
        elif (before := kept(task.entry, folder, key)) is not None:
            found[k] = before
        else:
            waiting.append((k, task))
    for number, outcome in each(_identified, [task for _, task in waiting], jobs=jobs):
        k, task = waiting[number]
        finished = outcome or Outcome(entry=task.entry, result=None, problem=LOST)
        keep(finished, folder, keys[k])
        found[k] = replace(finished, urdf=None)  # only what the table needs stays in memory
        said = f'{task.entry.arm} {task.entry.name}, {finished.state}'
        (progress or silent)(len(found) / len(tasks), f'{len(found)} of {len(tasks)}: {said}')
    return _judged_by_the_previous(tasks, [found[k] for k in range(len(tasks))], keys, folder, jobs)


def _judged_by_the_previous(
    tasks: Sequence[Task | Outcome], outcomes: Sequence[Outcome], keys: Sequence[str], folder: Path, jobs: int
) -> list[Outcome]:
    """Return the outcomes with their findings; those of an arm whose recordings are the same are kept from before."""
    arms: dict[str, list[int]] = {}
    for k, outcome in enumerate(outcomes):
        if isinstance(tasks[k], Task):
            arms.setdefault(outcome.entry.arm, []).append(k)
    findings: dict[int, Finding | None] = {}
    waiting = []
    for places in arms.values():
        digest = hashlib.sha256('\n'.join(keys[k] for k in places).encode()).hexdigest()
        before = _kept_findings(folder / outcomes[places[0]].entry.folder.parts[0] / _FINDINGS, digest, len(places))
        if before is not None:
            findings |= dict(zip(places, before, strict=True))
        elif len(places) > 1:
            waiting.append((places, digest))
    chains = [[(task, outcomes[k]) for k in places if isinstance(task := tasks[k], Task)] for places, _ in waiting]
    for number, found in each(_succession, chains, jobs=jobs):
        places, digest = waiting[number]
        if found is not None:
            findings |= dict(zip(places, found, strict=True))
            content = {'key': digest, 'findings': [None if one is None else asdict(one) for one in found]}
            path = folder / outcomes[places[0]].entry.folder.parts[0] / _FINDINGS
            write_text(path, yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
    return [replace(outcome, finding=findings.get(k)) for k, outcome in enumerate(outcomes)]


def _kept_findings(path: Path, digest: str, count: int) -> list[Finding | None] | None:
    try:
        content = read_yaml(path, 'findings', RobotIdError)
        found = [None if one is None else Finding(**one) for one in content['findings']]
        return found if content['key'] == digest and len(found) == count else None
    except (RobotIdError, KeyError, TypeError):
        return None


def _succession(chain: list[tuple[Task, Outcome]]) -> list[Finding | None]:
    """Judge each recording of an arm by the last result before it that held."""
    found: list[Finding | None] = []
    held: list[IdentificationResult] = []
    for task, outcome in chain:
        finding = None
        if held and (outcome.result is not None):
            usual = float(np.median([own_error(result) for result in held]))
            try:
                datasets, _, _ = load_datasets(task.files.training, task.files.settings, topic=task.files.topic)
                finding = judge(datasets, task.model, held[-1], outcome.result, usual)
            except RobotIdError as cause:
                finding = Finding(error=np.inf, usual=usual, cause=f'another arm: {cause}')
        found.append(finding)
        if outcome.result is not None and outcome.usable and (finding is None or not finding.cause):
            held.append(outcome.result)
    return found


def _identified(task: Task) -> Outcome:
    """Return what comes of a recording, whatever is wrong with it."""
    began = time.process_time()
    entry = task.entry
    problem = ''
    try:
        found = identify_files(task.files, task.model, task.config)
        origin = {'command': task.command, 'folder': str(Path.cwd())}
        result = replace(found.result, provenance={**origin, **found.result.provenance})
        return Outcome(
            entry=entry,
            result=result,
            urdf=None if task.model.source is None else calibrated_urdf(task.model, result),
            seconds=time.process_time() - began,
        )
    except MissingDependencyError:
        raise
    except RobotIdError as cause:
        problem = str(cause)
    except MemoryError:
        problem = 'there is not enough memory for it; use fewer jobs at a time'
    except Exception as fault:  # one recording must not end the others
        problem = f'this is a fault of robotid_ros ({type(fault).__name__}: {" ".join(str(fault).split())[:160]})'
    return Outcome(entry=entry, result=None, problem=problem, seconds=time.process_time() - began)

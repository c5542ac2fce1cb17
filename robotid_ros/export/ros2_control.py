# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""ros2_control: a package with the generated C++ and a controller that commands its torque."""

import math
import re
from pathlib import Path

from robotid_ros.dynamics import MinimalModel
from robotid_ros.export.source_code import identifier

_TEMPLATES = Path(__file__).with_name('templates')


def package_name(model: MinimalModel) -> str:
    """Return the name of an arm's package, a C++ namespace too."""
    return identifier(f'{model.model.name}_torque')


def package_files(model: MinimalModel) -> dict[str, str]:
    """Return the files of the package of an :func:`~robotid_ros.export.identified_model.identified_model`, by name."""
    limits = (f'{value!r}' if math.isfinite(value) else 'INFINITY' for value in model.model.limits.effort.tolist())
    values = {
        'NAME': package_name(model),
        'JOINTS': ', '.join(_string(name) for name in model.model.joint_names),
        'EFFORT': ', '.join(limits),
    }
    files = {'inverse_dynamics.hpp': model.cpp_header(package_name(model))}
    for path in sorted(_TEMPLATES.iterdir()):
        files[path.name] = re.sub(r'@([A-Z]+)@', lambda match: values[match[1]], path.read_text(encoding='utf-8'))
    return files


def _string(text: str) -> str:
    """Return a C++ string literal: UTF-8 as octal escapes, which no following character can join."""
    safe = (chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f'\\{byte:03o}' for byte in text.encode())
    return f'"{"".join(safe)}"'

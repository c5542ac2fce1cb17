# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""How a report says numbers, units and names."""

import math
from collections.abc import Sequence

_SUPERSCRIPT = str.maketrans('0123456789-', '⁰¹²³⁴⁵⁶⁷⁸⁹⁻')
_MINUS = '−'


def number(value: float, digits: int = 3) -> str:
    """Return a value with some significant digits: 4.06, −0.0312, 1.2·10⁻⁵, ∞; a dash for NaN."""
    if math.isnan(value):
        return '–'
    if math.isinf(value):
        return '∞' if value > 0 else f'{_MINUS}∞'
    if value == 0.0:
        return '0'
    mantissa, exponent = f'{value:.{digits - 1}e}'.split('e')
    power = int(exponent)
    if -5 < power < 6:
        text = f'{float(f"{mantissa}e{power}"):.{max(digits - 1 - power, 0)}f}'
    else:
        text = f'{mantissa}·10{str(power).translate(_SUPERSCRIPT)}'
    return text.replace('-', _MINUS, 1) if text.startswith('-') else text


def percent(value: float, digits: int = 1) -> str:
    """Return a share in percent: 97.3 %."""
    if not math.isfinite(value):
        return number(value)
    return f'{value:.{digits}f} %'.replace('-', _MINUS)


def integer(value: int) -> str:
    """Return a count with narrow spaces between thousands."""
    return f'{value:,}'.replace(',', '\u202f')


def unit(text: str) -> str:
    """Return a unit as it is printed: N·m·s/rad for N*m*s/rad, kg·m² for kg*m^2."""
    return text.replace('*', '·').replace('^2', '²').replace('^3', '³')


def units_of(joint_type: str) -> tuple[str, str, str]:
    """Return the units of torque, speed and position of a joint, as printed."""
    return ('N', 'm/s', 'm') if joint_type == 'prismatic' else ('N·m', 'rad/s', 'rad')


def sentence(text: str) -> str:
    """Return a text with a capital at its beginning and a stop at its end."""
    return text[:1].upper() + text[1:] + ('' if text.endswith(('.', '!', '?')) else '.')


def listed(names: Sequence[str], most: int = 8) -> str:
    """Return the first of some names, and how many more there are: 'a, b and 3 more'."""
    return ', '.join(names[:most]) + (f' and {len(names) - most} more' if len(names) > most else '')


def friction_label(name: str) -> str:
    """Return a friction model's name as people say it: Coulomb + viscous + offset."""
    words = name.replace('daemi_heimann', 'Daemi-Heimann').replace('_', '+').split('+')
    return ' + '.join(word.capitalize() if word in ('coulomb', 'stribeck') else word for word in words)

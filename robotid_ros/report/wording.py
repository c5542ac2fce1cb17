# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Small matters of language that reports share."""


def sentence(text: str) -> str:
    """Return a text with a capital at its beginning and a stop at its end."""
    return text[:1].upper() + text[1:] + ('' if text.endswith(('.', '!', '?')) else '.')


def friction_label(name: str) -> str:
    """Return a friction model's name as people say it: Coulomb + viscous + offset."""
    words = name.replace('daemi_heimann', 'Daemi-Heimann').replace('_', '+').split('+')
    return ' + '.join(word.capitalize() if word in ('coulomb', 'stribeck') else word for word in words)

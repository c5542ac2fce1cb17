# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Sphinx configuration; ``make docs`` builds with warnings as errors."""

import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / '_ext'))
shutil.rmtree(HERE / '_api', ignore_errors=True)  # generated anew: names may have gone

project = 'robotid_ros'
author = 'robotid_ros maintainers'
project_copyright = author
version = release = str(ElementTree.parse(HERE.parent / 'package.xml').getroot().findtext('version'))

extensions = [
    'sphinx.ext.autodoc',
    'sphinx.ext.autosummary',
    'numpydoc',
    'myst_parser',
    'architecture',
    'docstrings',
    'live_tables',
    'mathml',
]
exclude_patterns = ['_build']
templates_path = ['_templates']
nitpicky = False

autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
autodoc_member_order = 'bysource'
autodoc_typehints = 'none'  # shapes and units are in the text
highlight_language = 'none'  # equations in docstrings are literal blocks
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_show_inherited_class_members = False

myst_enable_extensions = ['dollarmath', 'amsmath', 'deflist', 'colon_fence', 'tasklist']
myst_heading_anchors = 3

html_math_renderer = 'mathml'
html_static_path = ['_static']
html_css_files = ['robotid.css']
html_theme = 'furo'
html_title = f'robotid_ros {release}'
html_copy_source = False
html_show_sphinx = False

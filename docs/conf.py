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

"""One thread for linear algebra, unless the user says otherwise.

The matrices here are small: handing a 58 x 58 eigenvalue problem to several threads costs more than
it saves, and much more where other processes need the cores too, as the nodes do.
"""

import os

__all__ = ['use_one_thread']

VARIABLES = ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS')


def use_one_thread() -> None:
    """Ask numpy's libraries for one thread; must be called before numpy is imported."""
    for variable in VARIABLES:
        os.environ.setdefault(variable, '1')

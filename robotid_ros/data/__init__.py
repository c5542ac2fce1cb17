"""Recordings as they came, datasets ready for identification, and their files."""

from robotid_ros.data.dataset import Dataset, concatenate
from robotid_ros.data.recording import Recording

__all__ = ['Dataset', 'Recording', 'concatenate']

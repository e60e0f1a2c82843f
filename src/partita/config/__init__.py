"""Documents that users write: read strictly, with line and column, and written back.

NVIDIA's formats (device plugin, mig-parted, the parts of the operator's Helm values that concern
sharing and MIG) and our own ``PartitionPolicy``. Text in, values or findings out; no file access.
"""

"""The GPU models we know: names, memory, MIG profiles and where they may stand.

Data in ``data/*.json`` (one file per architecture, one profile per line), read once; lookups here.
To add a GPU model, add it to the file of its architecture; nothing else changes.
"""

"""Serving slices to the kubelet over its device plugin API, ``v1beta1``.

``server`` is the whole; ``registration`` keeps one resource known to the kubelet, ``calls`` answers
what the kubelet asks of it. What a container gets is decided in ``response``, which is pure; the
files for it come from ``node_files`` and ``cdi``.
"""

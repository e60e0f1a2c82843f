"""The catalogue as plain data, for JSON and YAML.

Keys are those of the catalogue with its units in them; unknown is null. Keys may be added, never
renamed.
"""

from collections.abc import Sequence

from partita.catalog.gpu_model import GpuModel, MigCapability, Profile
from partita.model import resource

__all__ = ["list_document", "model_document"]


def list_document(models: Sequence[GpuModel]) -> list[dict[str, object]]:
    """Return one summary per board: what the list shows, unshortened."""
    return [
        {
            "id": model.id,
            "names": list(model.names),
            "architecture": model.architecture,
            "memory_mib": model.memory_mib,
            "sm_count": model.sm_count,
            "mig": None if model.mig is None else _mig_summary(model.mig),
            "sharing": list(model.sharing),
            "uncertain": dict(model.uncertain),
        }
        for model in models
    ]


def model_document(model: GpuModel) -> dict[str, object]:
    """Return everything the catalogue says of one board."""
    return {
        "id": model.id,
        "names": list(model.names),
        "aliases": list(model.aliases),
        "form": model.form,
        "pci_devices": list(model.pci_devices),
        "architecture": model.architecture,
        "chip": model.chip,
        "compute_capability": model.compute_capability,
        "memory_mib": model.memory_mib,
        "sm_count": model.sm_count,
        "mig": None if model.mig is None else _mig(model.mig),
        "sharing": list(model.sharing),
        "uncertain": dict(model.uncertain),
        "notes": list(model.notes),
        "sources": list(model.all_sources),
    }


def _mig_summary(mig: MigCapability) -> dict[str, object]:
    return {
        "max_instances": mig.max_instances,
        "compute_slices": mig.compute_slices,
        "memory_slices": mig.memory_slices,
        "axis_is_nominal": mig.axis_is_nominal,
        "min_driver": mig.min_driver,
        "min_vbios": mig.min_vbios,
        "mode_change_needs_reset": mig.mode_change_needs_reset,
        "mode_survives_reboot": mig.mode_survives_reboot,
        "requires_display_mode_compute": mig.requires_display_mode_compute,
        "profiles": [profile.name for profile in mig.profiles],
    }


def _mig(mig: MigCapability) -> dict[str, object]:
    return _mig_summary(mig) | {"profiles": [_profile(profile) for profile in mig.profiles]}


def _profile(profile: Profile) -> dict[str, object]:
    engines = profile.engines
    return {
        "name": profile.name,
        "aliases": list(profile.aliases),
        "id": profile.profile_id,
        "resource": resource.mig_resource(profile.name),
        "compute_slices": profile.compute_slices,
        "memory_slices": profile.memory_slices,
        "memory_mib": profile.memory_mib,
        "sm_count": profile.sm_count,
        "max_instances": profile.max_instances,
        "placements": [str(placement) for placement in profile.placements],
        "engines": {
            "copy": engines.copy,
            "decoder": engines.decoder,
            "encoder": engines.encoder,
            "jpeg": engines.jpeg,
            "ofa": engines.ofa,
        },
        "min_driver": profile.min_driver,
        "uncertain": list(profile.uncertain),
        "sources": list(profile.sources),
    }

"""What the catalogue says of one GPU model."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from partita.errors import UnknownProfileError
from partita.model.placement import Placement

__all__ = ["ComputeInstanceProfile", "Engines", "GpuModel", "MigCapability", "Profile"]

_VOLTA = (7, 0)  # compute capability


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """Counts of fixed-function engines of a GPU instance."""

    copy: int = 0
    decoder: int = 0
    encoder: int = 0
    jpeg: int = 0
    ofa: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeInstanceProfile:
    """A compute-instance profile inside a GPU-instance profile.

    Attributes:
        name: For example ``1c.3g.40gb``; the same as the GPU instance's when it takes all of it.
        profile_id: Id printed by ``nvidia-smi mig -lcip``.
        compute_slices: Compute slices it takes.
        starts: Where it may start, in compute slices of its GPU instance.
    """

    name: str
    profile_id: int
    compute_slices: int
    starts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A MIG GPU-instance profile of one GPU model.

    Attributes:
        name: For example ``1g.10gb+me``. Not unique over models: ``1g.10gb`` is id 15 on an
            A100 40GB and id 19 on an A100 80GB.
        profile_id: Id printed by ``nvidia-smi mig -lgip``, None when no source shows it.
        compute_slices: Compute slices.
        memory_slices: Units of the memory axis.
        memory_mib: Memory in MiB, None when unknown.
        sm_count: Streaming multiprocessors, None when unknown.
        max_instances: Most instances of it on one GPU.
        engines: Its engines.
        placements: Where it may stand.
        aliases: Names that other drivers give it.
        min_driver: Driver branch that introduced it, None = the model's own.
        uncertain: Fields that are derived or unverified; empty when all were seen.
        compute_instances: Ways to split it.
        sources: Keys of the source list.
    """

    name: str
    profile_id: int | None
    compute_slices: int
    memory_slices: int
    memory_mib: int | None
    sm_count: int | None
    max_instances: int
    engines: Engines
    placements: tuple[Placement, ...]
    aliases: tuple[str, ...] = ()
    min_driver: str | None = None
    uncertain: tuple[str, ...] = ()
    compute_instances: tuple[ComputeInstanceProfile, ...] = ()
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class MigCapability:
    """What MIG means on one GPU model.

    Attributes:
        max_instances: Most GPU instances.
        compute_slices: Compute slices of the GPU (7, 4 or 2).
        memory_slices: Length of the memory axis in units (8, 4, 12 …).
        min_driver: Driver needed, as the source says it.
        mode_change_needs_reset: Whether switching MIG on or off needs a GPU reset (Ampere).
        mode_survives_reboot: Whether the mode is kept over a reboot (Ampere). Instances never are.
        min_vbios: Video BIOS needed, None when none is stated.
        requires_display_mode_compute: Whether the display mode must be *compute* first.
        axis_is_nominal: True when no source shows the real axis; placements are then a model.
        profiles: All profiles, smallest first.
    """

    max_instances: int
    compute_slices: int
    memory_slices: int
    min_driver: str
    mode_change_needs_reset: bool
    mode_survives_reboot: bool
    min_vbios: str | None = None
    requires_display_mode_compute: bool = False
    axis_is_nominal: bool = False
    profiles: tuple[Profile, ...] = ()

    @cached_property
    def by_name(self) -> Mapping[str, Profile]:
        """Profiles by name and by alias."""
        found = {alias: profile for profile in self.profiles for alias in profile.aliases}
        found.update({profile.name: profile for profile in self.profiles})
        return found

    @cached_property
    def by_id(self) -> Mapping[int, Profile]:
        """Profiles by profile id, as far as a source shows it."""
        known = ((one.profile_id, one) for one in self.profiles)
        return {profile_id: one for profile_id, one in known if profile_id is not None}

    @cached_property
    def full_profile(self) -> Profile:
        """The profile that takes the whole GPU; its engines are all there are."""
        return max(
            self.profiles, key=lambda p: (p.memory_slices, p.engines.jpeg, "+" not in p.name)
        )


@dataclass(frozen=True, kw_only=True)
class GpuModel:
    """One GPU model of the catalogue.

    Attributes:
        id: Catalogue id, for example ``h100-80gb-sxm5``.
        names: Product names as NVML reports them.
        aliases: Other names people use.
        form: Form factor and memory in words.
        pci_devices: PCI device and vendor ids, ``0xDDDDVVVV``.
        architecture: NVIDIA's architecture name.
        chip: Chip name.
        compute_capability: CUDA compute capability.
        memory_mib: Total memory as ``nvidia-smi`` shows it, None when unknown.
        sm_count: Streaming multiprocessors, None when unknown.
        mig: What MIG means on it, None when the board has no MIG.
        uncertain: Field → how sure and why, for fields that are not sure.
        notes: What users get wrong about it.
        sources: Keys of the source list.
    """

    id: str
    names: tuple[str, ...]
    aliases: tuple[str, ...]
    form: str
    pci_devices: tuple[str, ...]
    architecture: str
    chip: str
    compute_capability: str
    memory_mib: int | None
    sm_count: int | None
    mig: MigCapability | None
    uncertain: Mapping[str, str]
    notes: tuple[str, ...]
    sources: tuple[str, ...]

    @property
    def sharing(self) -> tuple[str, ...]:
        """Ways to share the board, or a slice of it, without MIG.

        Time-slicing works on every board here. MPS limits the memory and threads of each client
        from Volta on (NVIDIA, *Multi-Process Service*); without limits it is not offered.
        """
        capability = tuple(int(part) for part in self.compute_capability.split("."))
        return ("time-slicing", "MPS") if capability >= _VOLTA else ("time-slicing",)

    @property
    def all_sources(self) -> tuple[str, ...]:
        """Keys of the sources of the board and of its profiles, each once."""
        profiles = self.mig.profiles if self.mig is not None else ()
        keys = [*self.sources, *(key for profile in profiles for key in profile.sources)]
        return tuple(dict.fromkeys(keys))

    def profile(self, name: str) -> Profile:
        """Return the MIG profile of a name or alias.

        Raises:
            UnknownProfileError: When the model has no MIG or no such profile.
        """
        found = self.mig.by_name.get(name) if self.mig is not None else None
        if found is not None:
            return found
        if self.mig is None:
            message, hint = (
                f"{self.names[0]} has no MIG profiles, asked for: {name}",
                "use time-slicing",
            )
        else:
            message = f"{self.names[0]} has no MIG profile named: {name}"
            hint = "it has " + ", ".join(p.name for p in self.mig.profiles)
        raise UnknownProfileError(message=message, hint=hint, model=self.id, profile=name)

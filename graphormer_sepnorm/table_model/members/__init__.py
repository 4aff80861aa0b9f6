"""The members of a table model, one file each."""

from graphormer_sepnorm.table_model.members.base import Member
from graphormer_sepnorm.table_model.members.forest import ForestMember
from graphormer_sepnorm.table_model.members.kernel import KernelMember, TunedKernelMember
from graphormer_sepnorm.table_model.members.networks import NetworksMember

MEMBERS: dict[str, type[Member]] = {
    "kernel": KernelMember,
    "forest": ForestMember,
    "networks": NetworksMember,
    "tuned kernel": TunedKernelMember,  # depends on the kernel and the networks, which come first
}

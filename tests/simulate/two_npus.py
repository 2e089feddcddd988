"""Two NPUs, the second of them slower: the smallest run that fills every table of an export."""

from tests.simulate.workload import Device, Fault, Model, Ranks, Script, Workload

TWO_NPUS = Workload(
    model=Model(layers=1, hidden=256, sequence=128, batch=4, vocabulary=1000),
    device=Device(vendor="ascend"),
    ranks=Ranks(2, bucket=2**20),
    script=Script(items=1),
    faults=(Fault("straggler", 1.4),),
    steps=2,
    tick=10,
)

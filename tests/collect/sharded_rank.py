"""One rank of the sharded model for test_dlrm.py: JOB RANK FOLDER in, losses and weights out."""

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from tracereplay.collectors.dlrm import Trainer
from tracereplay.collectors.job import DlrmJob


def train(job: DlrmJob, rank: int, folder: Path) -> None:
    """Save the losses and the weights of ``rank`` after the job's steps."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder / 'rendezvous'}", rank=rank, world_size=job.ranks)
    trainer = Trainer(job, rank)
    losses = [trainer.step(trainer.draw()) for _ in range(job.steps)]
    torch.save({"losses": losses, "weights": trainer.model.state_dict()}, folder / f"rank{rank}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    train(DlrmJob.from_json(json.loads(sys.argv[1])), int(sys.argv[2]), Path(sys.argv[3]))

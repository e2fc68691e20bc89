import pytest

from tracereplay.collectors.hook.redact import redacted_command, redacted_environment, redacted_text

SECRET = "hunter2-Zx"


@pytest.mark.parametrize(
    "words",
    [
        ["--token", SECRET],
        [f"--token={SECRET}"],
        ["--hf-token", SECRET],
        [f"--wandb.api_key={SECRET}"],
        [f"+trainer.password={SECRET} with spaces {SECRET}"],
        [f"API_KEY={SECRET}"],
        ["-p", SECRET],
        [f"-p{SECRET}"],
        [f"https://user:{SECRET}@host/path"],
        [f"postgres://user:p@{SECRET}@host/db"],
        [f"https://host/blob?x=1&sig={SECRET}&y=2"],
        [f"https://s3.host/a?X-Amz-Signature={SECRET}"],
        [f'{{"lr": 1, "secret": "{SECRET} {SECRET}"}}'],
        [f"Authorization: Bearer {SECRET}"],
        ["bash", "-c", f"export AWS_SECRET_ACCESS_KEY={SECRET}; python t.py"],
        ["bash", "-c", f"python t.py --password {SECRET} --lr 1"],
        ["bash", "-c", f"mysql -u me -p {SECRET}"],
    ],
)
def test_a_secret_goes_and_the_number_of_words_stays(words: list[str]) -> None:
    shown = redacted_command(words, {})

    assert SECRET not in " ".join(shown)
    assert "***" in " ".join(shown)
    assert len(shown) == len(words)


@pytest.mark.parametrize(
    "word",
    [
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "hf_abcdefghijklmnopqrstuvwxyzABCD",
        "0123456789abcdef0123456789abcdef01234567",
        "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY01",
    ],
)
def test_what_looks_like_a_credential_is_hidden_wherever_it_stands(word: str) -> None:
    assert redacted_command(["train.py", word, f"--note={word}"], {}) == ["train.py", "***", "--note=***"]


def test_the_value_of_a_secret_variable_is_hidden_wherever_it_stands() -> None:
    assert redacted_command(["x", f"--run={SECRET}-1"], {"MY_TOKEN": SECRET, "PWD": "--run"}) == ["x", "--run=***-1"]


@pytest.mark.parametrize(
    "words",
    [
        ["torchrun", "--nproc-per-node", "2", "train.py", "--lr=0.1", "--batch-size", "512"],
        ["python", "-m", "pkg.train", "--tokenizer", "gpt2", "--max-tokens", "4096", "--author", "me"],
        ["--arch-embedding-size=20000-30000-10000-50000", "--data=s3://bucket/path/to/train_v2"],
    ],
)
def test_ordinary_words_stay(words: list[str]) -> None:
    assert redacted_command(words, {}) == words


def test_the_home_folder_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/jane")

    assert redacted_text("--data=/home/jane/set") == "--data=~/set"


def test_of_the_environment_only_what_speed_depends_on_is_kept() -> None:
    environment = {"NCCL_ALGO": "Ring", "OMP_NUM_THREADS": "4", "AWS_SECRET_ACCESS_KEY": SECRET, "TORCH_HUB_TOKEN": SECRET}
    environment |= {"NCCL_TOPO_FILE": "/etc/topo.xml", "NCCL_DEBUG_NOTE": SECRET, "USER": "jane"}

    assert redacted_environment(environment) == {"NCCL_ALGO": "Ring", "OMP_NUM_THREADS": "4", "NCCL_DEBUG_NOTE": "***"}

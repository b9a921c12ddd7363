"""generate: the variants of each task and round."""


rule generate:
    input:
        run.outputs("generate"),


rule generate_variants:
    input:
        spec=run.spec("generate"),
        history=run.history,
    output:
        "artifacts/generate/{key}/round{round}.json",
    log:
        "artifacts/logs/generate/{key}/round{round}.log",
    conda:
        "../envs/kernelmill.yaml"
    shell:
        "python -m pipeline.execution.workers.submit generate --spec {input.spec} --history {input.history}"
        " --round {wildcards.round} --out {output} --root artifacts 2>&1 | tee {log} >&2"

"""track: the results in MLflow."""


rule track:
    input:
        spec=run.aggregate_spec,
        summary=run.aggregate,
    output:
        run.tracked,
    log:
        run.log("track"),
    conda:
        "../envs/kernelmill.yaml"
    shell:
        "python -m pipeline.execution.workers.submit --last {input.spec} track --spec {input.spec}"
        " --aggregate $(dirname {input.summary})"
        " --out {output} --root artifacts 2>&1 | tee {log} >&2"

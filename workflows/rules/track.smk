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
    params:
        aggregate=subpath(input.summary, parent=True),
    shell:
        "python -m pipeline.workers.submit track --spec {input.spec} --aggregate {params.aggregate}"
        " --out {output} --root artifacts 2>&1 | tee {log} >&2"

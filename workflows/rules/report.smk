"""report: one self-contained HTML file."""


rule report:
    input:
        spec=run.aggregate_spec,
        summary=run.aggregate,
    output:
        run.report,
    log:
        run.log("report"),
    conda:
        "../envs/kernelmill.yaml"
    params:
        aggregate=subpath(input.summary, parent=True),
    shell:
        "python -m pipeline.workers.submit report --spec {input.spec} --aggregate {params.aggregate}"
        " --out {output} --root artifacts 2>&1 | tee {log} >&2"

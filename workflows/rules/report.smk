"""report: one self-contained HTML file with links into MLflow; it joins the sweep's run there."""


rule report:
    input:
        spec=run.aggregate_spec,
        summary=run.aggregate,
        tracked=run.tracked,
    output:
        run.report,
    log:
        run.log("report"),
    conda:
        "../envs/kernelmill.yaml"
    shell:
        "{{ python -m pipeline.execution.workers.submit --last {input.spec} report --spec {input.spec}"
        " --aggregate $(dirname {input.summary})"
        " --tracked {input.tracked} --out {output} --root artifacts"
        " && python -m pipeline.execution.workers.submit --last {input.spec} track --spec {input.spec}"
        " --attach {input.tracked}"
        " --report {output} --root artifacts; }} 2>&1 | tee {log} >&2"

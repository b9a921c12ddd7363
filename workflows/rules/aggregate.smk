"""aggregate: typed tables and the winners of the experiment."""


rule aggregate:
    input:
        run.outputs("generate"),
        run.outputs("compile"),
        run.outputs("verify"),
        run.outputs("profile"),
        run.reported_mutations,
        spec=run.aggregate_spec,
    output:
        run.aggregate,
    log:
        run.log("aggregate"),
    conda:
        "../envs/kernelmill.yaml"
    shell:
        "python -m pipeline.execution.workers.submit --ahead {input.spec} aggregate --spec {input.spec} --out {output} --root artifacts"
        " 2>&1 | tee {log} >&2"

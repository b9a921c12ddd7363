"""report: one self-contained HTML page with links into MLflow, attached to the sweep's run there."""


rule report:
    input:
        **run.inputs("report"),
    output:
        run.output("report"),
    log:
        run.log("report"),
    conda:
        "../envs/kernelmill.yaml"
    shell:
        run.shell("report", "attach")

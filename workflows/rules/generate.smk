"""generate: the variants of each task and round."""


rule generate:
    input:
        run.outputs("generate"),


rule generate_variants:
    input:
        **run.inputs("generate"),
    output:
        run.output("generate"),
    log:
        run.log("generate"),
    conda:
        "../envs/kernelmill.yaml"
    shell:
        run.shell("generate")

"""compile: binaries and static facts, as many variants at once as there are cores."""


rule compile:
    input:
        run.outputs("compile"),


rule compile_variants:
    input:
        **run.inputs("compile"),
    output:
        run.output("compile"),
    log:
        run.log("compile"),
    group:
        run.chain("compile")
    conda:
        "../envs/kernelmill.yaml"
    threads: run.threads("compile")
    resources:
        **run.resources("compile"),
    shell:
        run.shell("compile")

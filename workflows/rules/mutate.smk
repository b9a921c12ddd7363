"""mutation: mutants of the kernels' sources, and how many of them verification rejects."""


rule mutation:
    input:
        run.outputs("mutate", every=True),


rule mutate_implementation:
    input:
        **run.inputs("mutate"),
    output:
        run.output("mutate"),
    log:
        run.log("mutate"),
    conda:
        "../envs/kernelmill.yaml"
    threads: run.threads("mutate")
    resources:
        **run.resources("mutate"),
    shell:
        run.shell("mutate")

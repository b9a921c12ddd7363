"""aggregate: typed tables and the winners of the experiment."""


rule aggregate:
    input:
        **run.inputs("aggregate"),
    output:
        run.output("aggregate"),
    log:
        run.log("aggregate"),
    conda:
        "../envs/kernelmill.yaml"
    shell:
        run.shell("aggregate")

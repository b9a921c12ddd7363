"""track: the results in MLflow."""


rule track:
    input:
        **run.inputs("track"),
    output:
        run.output("track"),
    log:
        run.log("track"),
    conda:
        "../envs/kernelmill.yaml"
    shell:
        run.shell("track")

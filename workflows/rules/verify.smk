"""verify: a verdict on each variant that compiled."""


rule verify:
    input:
        run.outputs("verify"),


rule verify_variants:
    input:
        **run.inputs("verify"),
    output:
        run.output("verify"),
    log:
        run.log("verify"),
    group:
        run.chain("verify")
    conda:
        "../envs/kernelmill.yaml"
    threads: run.threads("verify")
    resources:
        **run.resources("verify"),
    shell:
        run.shell("verify")

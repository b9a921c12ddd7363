"""profile: measurements of what verified, alone on its device."""


rule profile:
    input:
        run.outputs("profile"),


rule profile_variants:
    input:
        **run.inputs("profile"),
    output:
        run.output("profile"),
    log:
        run.log("profile"),
    group:
        run.chain("profile")
    conda:
        "../envs/kernelmill.yaml"
    threads: run.threads("profile")
    resources:
        **run.resources("profile"),
    shell:
        run.shell("profile")

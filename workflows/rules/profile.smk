"""profile: measurements of what verified, alone on its device."""


rule profile:
    input:
        run.outputs("profile"),


rule profile_variants:
    input:
        spec=run.spec("profile"),
        compiled=run.compiled_for_profile,
        verified=run.verified,
    output:
        "artifacts/profile/{key}/round{round}.json",
    log:
        "artifacts/logs/profile/{key}/round{round}.log",
    group:
        run.chain("profile")
    conda:
        "../envs/kernelmill.yaml"
    threads: run.profile_threads
    resources:
        **run.on_cluster("profile"),
        gpu=run.profile_gpus,
    shell:
        "python -m pipeline.execution.workers.submit profile --spec {input.spec} --compiled {input.compiled}"
        " --verified {input.verified} --out {output} --root artifacts 2>&1 | tee {log} >&2"

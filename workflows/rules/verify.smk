"""verify: a verdict on each variant that compiled."""


rule verify:
    input:
        run.outputs("verify"),


rule verify_variants:
    input:
        spec=run.spec("verify"),
        compiled=run.compiled,
    output:
        "artifacts/verify/{key}/round{round}.json",
    log:
        "artifacts/logs/verify/{key}/round{round}.log",
    group:
        run.chain("verify")
    conda:
        "../envs/kernelmill.yaml"
    threads: run.verify_threads
    resources:
        **run.on_cluster("verify"),
    shell:
        "python -m pipeline.execution.workers.submit verify --spec {input.spec} --compiled {input.compiled}"
        " --out {output} --root artifacts --workers {threads} 2>&1 | tee {log} >&2"

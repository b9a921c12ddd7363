"""compile: binaries and static facts, as many variants at once as there are cores."""


rule compile:
    input:
        run.outputs("compile"),


rule compile_variants:
    input:
        spec=run.spec("compile"),
        variants=run.generated,
    output:
        "artifacts/compile/{key}/round{round}.json",
    log:
        "artifacts/logs/compile/{key}/round{round}.log",
    group:
        run.chain("compile")
    conda:
        "../envs/kernelmill.yaml"
    threads: run.compile_threads
    resources:
        **run.on_cluster("compile"),
    shell:
        "python -m pipeline.execution.workers.submit --warm {input.spec} compile --spec {input.spec} --variants {input.variants}"
        " --out {output} --root artifacts --workers {threads} 2>&1 | tee {log} >&2"

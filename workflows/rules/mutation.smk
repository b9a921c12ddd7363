"""mutation: mutants of the kernels' sources, and how many of them the gate kills."""


rule mutation:
    input:
        run.mutations,


rule mutate_implementation:
    input:
        spec=run.spec("mutate"),
    output:
        "artifacts/mutate/{key}.json",
    log:
        "artifacts/logs/mutate/{key}.log",
    conda:
        "../envs/kernelmill.yaml"
    threads: run.cores
    resources:
        **run.on_cluster("mutate"),
    shell:
        "python -m pipeline.execution.workers.submit mutate --spec {input.spec} --out {output} --root artifacts"
        " --workers {threads} 2>&1 | tee {log} >&2"

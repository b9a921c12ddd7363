"""judge: verdicts on candidates from elsewhere, one job per problem, and one table of all."""


rule judge:
    input:
        judging.table,


rule judge_problem:
    input:
        spec="artifacts/plan/judge/{key}.json",
    output:
        "artifacts/judge/{key}.json",
    log:
        "artifacts/logs/judge/{key}.log",
    conda:
        "../envs/kernelmill.yaml"
    threads: judging.threads
    shell:
        "python -m pipeline.execution.workers.submit judge --spec {input.spec} --out {output} --root artifacts"
        " --workers {threads} 2>&1 | tee {log} >&2"


rule verdicts:
    input:
        judging.judged,
        spec="artifacts/plan/verdicts/{key}.json",
    output:
        "artifacts/verdicts/{key}.csv",
    log:
        "artifacts/logs/verdicts/{key}.log",
    conda:
        "../envs/kernelmill.yaml"
    shell:
        "python -m pipeline.execution.workers.submit verdicts --spec {input.spec} --judged artifacts/judge"
        " --out {output} 2>&1 | tee {log} >&2"

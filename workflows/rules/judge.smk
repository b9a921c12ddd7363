"""judge: verdicts on candidates from elsewhere, one job per problem, and one table of all."""


rule judge:
    input:
        judging.table,


rule judge_problem:
    input:
        spec=STAGES["judge"].spec_path(ROOT, "{key}"),
    output:
        STAGES["judge"].output_path(ROOT, "{key}"),
    log:
        STAGES["judge"].log_path(ROOT, "{key}"),
    conda:
        "../envs/kernelmill.yaml"
    threads: judging.threads
    resources:
        gpu=judging.gpus,
    shell:
        shell_line("judge")


rule verdicts:
    input:
        judging.judged,
        spec=STAGES["verdicts"].spec_path(ROOT, "{key}"),
    output:
        STAGES["verdicts"].output_path(ROOT, "{key}"),
    log:
        STAGES["verdicts"].log_path(ROOT, "{key}"),
    conda:
        "../envs/kernelmill.yaml"
    shell:
        shell_line("verdicts")

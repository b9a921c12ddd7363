"""judge: verdicts on candidates from elsewhere, one job per problem, their times, and one table of all."""


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


rule time_problem:
    input:
        judged=judging.judged_of,
        spec=STAGES["timing"].spec_path(ROOT, "{key}"),
    output:
        STAGES["timing"].output_path(ROOT, "{key}"),
    log:
        STAGES["timing"].log_path(ROOT, "{key}"),
    conda:
        "../envs/kernelmill.yaml"
    threads: judging.measuring_threads
    resources:
        gpu=judging.measuring_gpus,
    shell:
        shell_line("timing")


rule verdicts:
    input:
        judging.judged,
        judging.timed,
        spec=STAGES["verdicts"].spec_path(ROOT, "{key}"),
    output:
        STAGES["verdicts"].output_path(ROOT, "{key}"),
    log:
        STAGES["verdicts"].log_path(ROOT, "{key}"),
    conda:
        "../envs/kernelmill.yaml"
    shell:
        shell_line("verdicts")

"""What spark-submit runs: `srm-driver`, in the session and with the jars that spark-submit gives it."""

from srm_spark.cli.driver import main

if __name__ == "__main__":
    main()

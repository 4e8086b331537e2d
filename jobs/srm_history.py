"""What spark-submit runs: `srm-service history`, in the session and with the jars that spark-submit gives it."""

from srm_spark.cli.service import history

if __name__ == "__main__":
    history()

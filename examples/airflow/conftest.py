"""Airflow in a directory of its own: it reads these variables when it is imported."""

import os
import tempfile
from pathlib import Path

HOME = tempfile.TemporaryDirectory(prefix="airflow-")
os.environ["AIRFLOW_HOME"] = HOME.name
os.environ["AIRFLOW__CORE__DAGS_FOLDER"] = str(Path(__file__).parent / "dags")
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"

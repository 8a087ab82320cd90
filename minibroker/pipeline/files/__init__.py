"""Small files of a job, in directories, in file systems of Hadoop and in object stores."""

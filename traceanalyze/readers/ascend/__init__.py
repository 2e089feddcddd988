"""Ascend profiles (torch_npu, MindSpore): a folder of files for each rank, as text or as a database."""

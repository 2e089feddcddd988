"""The regression gate: is the candidate slower or bigger than the baseline by more than its budget?"""

"""Parts of the evaluation of before and after."""

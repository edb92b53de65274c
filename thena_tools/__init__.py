"""Ready-made tools for Thena: those that need more of the framework than a copied snippet can reach."""

from thena_tools.nested import workflow_tool
from thena_tools.parallel import ParallelTool

__all__ = ["ParallelTool", "workflow_tool"]
